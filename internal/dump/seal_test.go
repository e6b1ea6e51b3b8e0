package dump_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
)

const sealed = `{"schema": 2, "layers": [["a", 1], ["b", 0.00001]], "of": {"x": null, "y": "<ü>"}}`

func TestSeal(t *testing.T) {
	want, err := dump.Seal([]byte(sealed))
	require.NoError(t, err)
	for _, c := range []struct {
		text, reason string
		same         bool
	}{
		{strings.ReplaceAll(sealed, " ", "\r\n\t"), "white space", true},
		{`{"of": {"y": "\u003c\u00fc>", "x": null}, "layers": [["a", 1.0], ["b", 1e-5]], "schema": 2}`,
			"keys, escapes and numbers in another form", true},
		{strings.Replace(sealed, "{", `{"sha256": "0123", `, 1), "its own key", true},
		{strings.Replace(sealed, `["a", 1], `, "", 1), "an entry is gone", false},
		{strings.Replace(sealed, `["a", 1], ["b", 0.00001]`, `["b", 0.00001], ["a", 1]`, 1), "the order is another", false},
		{strings.Replace(sealed, `"x": null, `, "", 1), "a key is gone", false},
		{strings.Replace(sealed, `"schema": 2`, `"schema": 1`, 1), "a value is another", false},
		{strings.Replace(sealed, `"of": {`, `"of": {"sha256": "0123", `, 1), "a key of that name, deeper", false},
	} {
		got, err := dump.Seal([]byte(c.text))
		require.NoError(t, err, c.reason)
		assert.Equal(t, c.same, got == want, c.reason)
		if err := dump.CheckSeal([]byte(c.text), want); c.same {
			require.NoError(t, err, c.reason)
		} else {
			require.ErrorIs(t, err, dump.ErrSeal, c.reason)
		}
	}
	require.ErrorIs(t, dump.CheckSeal([]byte(sealed), ""), dump.ErrSeal, "a file that lost its hash")
	for _, bad := range []string{"", "[]", "{", "1"} {
		_, err := dump.Seal([]byte(bad))
		require.Error(t, err, "%q is no object", bad)
	}
}

func FuzzSeal(f *testing.F) {
	f.Add([]byte(sealed))
	f.Add([]byte(`{"sha256":1,"a":{"":[1e400]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		sum, err := dump.Seal(data)
		if err != nil {
			return
		}
		var b bytes.Buffer
		require.NoError(t, json.Indent(&b, data, " ", "\t"))
		again, err := dump.Seal(b.Bytes())
		require.NoError(t, err)
		require.Equal(t, sum, again)
		require.NoError(t, dump.CheckSeal(data, sum), fmt.Sprintf("%q", data))
	})
}
