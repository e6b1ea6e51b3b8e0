package mapfile_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/mapfile"
)

func TestJSONError(t *testing.T) {
	for _, tt := range []struct{ data, want, reason string }{
		{"{\n \"a\": 1,\n oops}", "line 3: ", "syntax"},
		{"{\n \"a\": \"x\"}", "line 2: ", "type"},
		{"{\n \"a\": ", "line 2: ", "truncated"},
	} {
		var v struct{ A int }
		err := json.Unmarshal([]byte(tt.data), &v)
		assert.ErrorContains(t, mapfile.JSONError([]byte(tt.data), err), tt.want, tt.reason)
	}
	other := errors.New("x")
	assert.Equal(t, other, mapfile.JSONError(nil, other), "an error without a position is not changed")
}
