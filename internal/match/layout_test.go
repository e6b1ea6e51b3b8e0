package match_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/match"
)

// Whatever way two shapes lie onto each other, both views lead to the shape of the fit. The batch
// has two sequences of three tokens, the second with one of padding.
func TestFit(t *testing.T) {
	padding, err := match.NewPadMask([][]bool{{true, true, true}, {true, true, false}})
	require.NoError(t, err)
	tests := []struct {
		name           string
		golden, actual []int
		allow          match.Allowance
		shape          []int // nil if they do not fit
		note           string
		reason         string
	}{
		{"equal", []int{4, 8}, []int{4, 8}, match.Allowance{}, []int{4, 8}, "", "nothing to do"},
		{"batch added", []int{1, 4, 8}, []int{4, 8}, match.Allowance{}, []int{1, 4, 8}, "batch axis added to the candidate",
			"one sequence"},
		{"batch dropped", []int{4, 8}, []int{1, 4, 8}, match.Allowance{}, []int{4, 8}, "batch axis of the candidate dropped",
			"one sequence"},
		{"ragged", []int{2, 3, 8}, []int{6, 8}, match.Allowance{}, []int{2, 3, 8},
			"the candidate's rows are the tokens of 2 sequences; 1 padding rows left out", "all rows in one list"},
		{"golden ragged", []int{6, 8}, []int{2, 3, 8}, match.Allowance{}, []int{2, 3, 8},
			"the golden's rows are the tokens of 2 sequences; 1 padding rows left out", "and the other way round"},
		{"flat floats", []int{2, 4}, []int{8}, match.Allowance{}, nil, "", "one number a token is an id"},
		{"flat ids", []int{2, 4}, []int{8}, match.Allowance{IDs: true}, []int{2, 4},
			"the candidate's rows are the tokens of 2 sequences", "one number a token is an id"},
		{"unpadded", []int{2, 3, 8}, []int{5, 8}, match.Allowance{}, []int{5, 8},
			"the candidate has no padding rows: 5 of 6 compared", "the real tokens"},
		{"unpadded rows", []int{6, 8}, []int{5, 8}, match.Allowance{}, []int{5, 8},
			"the candidate has no padding rows: 5 of 6 compared", "as routers have them"},
		{"rows", []int{6, 8}, []int{6, 8}, match.Allowance{}, []int{6, 8}, "1 padding rows left out", "as routers have them"},
		{"last row", []int{2, 3, 8}, []int{2, 8}, match.Allowance{LastRow: true}, []int{2, 8},
			"last row only: the candidate computes no other", "of each sequence"},
		{"golden's last row", []int{1, 8}, []int{4, 8}, match.Allowance{LastRow: true}, []int{1, 8},
			"last row only: the golden has no other", "of one sequence"},
		{"last rows of a ragged batch", []int{1, 5, 8}, []int{2, 8}, match.Allowance{LastRow: true, Lengths: []int{3, 2}}, []int{2, 8},
			"last row only: the candidate computes no other", "of each sequence, by their lengths"},
		{"last rows with an axis of 1", []int{5, 8}, []int{2, 1, 8}, match.Allowance{LastRow: true, Lengths: []int{3, 2}}, []int{2, 8},
			"last row only: the candidate computes no other", "another form of it"},
		{"other lengths", []int{1, 5, 8}, []int{3, 8}, match.Allowance{LastRow: true, Lengths: []int{3, 2}}, nil, "", "not a row for each sequence"},
		{"last row not allowed", []int{2, 3, 8}, []int{2, 8}, match.Allowance{}, nil, "", "it may be another pooling"},
		{"ones", []int{1, 1, 4, 4}, []int{4, 4}, match.Allowance{Ones: true}, []int{1, 1, 4, 4},
			"reshaped from [4 4] to [1 1 4 4]", "a mask"},
		{"ones not allowed", []int{1, 1, 4, 4}, []int{4, 4}, match.Allowance{}, nil, "", "no mask"},
		{"reshape", []int{4, 6}, []int{3, 8}, match.Allowance{Reshape: true}, []int{4, 6}, "reshaped from [3 8] to [4 6]",
			"equally many elements"},
		{"misfit", []int{4, 6}, []int{3, 8}, match.Allowance{}, nil, "", "equally many elements may be something else"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, fits := padding.Fit(tt.golden, tt.actual, tt.allow)
			require.Equal(t, tt.shape != nil, fits, tt.reason)
			assert.Equal(t, tt.shape, f.Shape, tt.reason)
			assert.Equal(t, tt.note, f.Note)
			if !fits {
				return
			}
			golden, err := f.Golden.Shape(tt.golden)
			require.NoError(t, err)
			actual, err := f.Actual.Shape(tt.actual)
			require.NoError(t, err)
			assert.Equal(t, [][]int{f.Shape, f.Shape}, [][]int{golden, actual}, "what the views make")
		})
	}
}

func TestPaddingErrors(t *testing.T) {
	_, err := match.NewPadMask([][]bool{{true, true}, {true}})
	assert.ErrorContains(t, err, "sequence 1 has 1 tokens, the first has 2")
	_, err = match.NewPadMask([][]bool{{true, true}, {false, false}})
	assert.ErrorContains(t, err, "sequence 1 has no real token")
	p, err := match.NewPadMask([][]bool{{true, true}})
	assert.NoError(t, err)
	assert.False(t, p.Known(), "a mask without padding is none")
}
