package seal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/seal"
)

const content = `{"schema": 2, "layers": [["a", 1], ["b", 0.00001]], "of": {"x": null, "y": "<ü>"}}`

func TestSum(t *testing.T) {
	want, err := seal.Sum([]byte(content))
	require.NoError(t, err)
	for _, c := range []struct {
		text, reason string
		same         bool
	}{
		{strings.ReplaceAll(content, " ", "\r\n\t"), "white space", true},
		{`{"of": {"y": "\u003c\u00fc>", "x": null}, "layers": [["a", 1.0], ["b", 1e-5]], "schema": 2}`,
			"keys, escapes and numbers in another form", true},
		{strings.Replace(content, "{", `{"sha256": "0123", `, 1), "its own key", true},
		{strings.Replace(content, `["a", 1], `, "", 1), "an entry is gone", false},
		{strings.Replace(content, `["a", 1], ["b", 0.00001]`, `["b", 0.00001], ["a", 1]`, 1), "the order is another", false},
		{strings.Replace(content, `"x": null, `, "", 1), "a key is gone", false},
		{strings.Replace(content, `"schema": 2`, `"schema": 1`, 1), "a value is another", false},
		{strings.Replace(content, `"of": {`, `"of": {"sha256": "0123", `, 1), "a key of that name, deeper", false},
	} {
		got, err := seal.Sum([]byte(c.text))
		require.NoError(t, err, c.reason)
		assert.Equal(t, c.same, got == want, c.reason)
		if err := seal.Check([]byte(c.text), want); c.same {
			require.NoError(t, err, c.reason)
		} else {
			require.ErrorIs(t, err, seal.ErrBroken, c.reason)
		}
	}
	require.ErrorIs(t, seal.Check([]byte(content), ""), seal.ErrBroken, "a file that lost its hash")
	for _, bad := range []string{"", "[]", "{", "1"} {
		_, err := seal.Sum([]byte(bad))
		require.Error(t, err, "%q is no object", bad)
	}
}

func FuzzSum(f *testing.F) {
	f.Add([]byte(content))
	f.Add([]byte(`{"sha256":1,"a":{"":[1e400]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		sum, err := seal.Sum(data)
		if err != nil {
			return
		}
		var b bytes.Buffer
		require.NoError(t, json.Indent(&b, data, " ", "\t"))
		again, err := seal.Sum(b.Bytes())
		require.NoError(t, err)
		require.Equal(t, sum, again)
		require.NoError(t, seal.Check(data, sum), fmt.Sprintf("%q", data))
	})
}
