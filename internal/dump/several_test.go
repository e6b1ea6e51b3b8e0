package dump_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
)

// One run.json may have several cases, whose files lie beside it.
func TestOpenSeveral(t *testing.T) {
	with := func(sha string) string {
		return folder(t, map[string]any{
			"short.0.safetensors": named(t, "a-output", "b-output"),
			"run.json": `{"schema":1,"cases":[{"schema":1,"case":"short","sha256":{` + sha +
				`},"order":[["0","a","output","short.0.safetensors"],
				["0","b","input_0","short.0.safetensors","a-output"],["0","b","output","short.0.safetensors"]]}]}`,
		})
	}
	runs, err := dump.OpenCases(with(""), dump.Options{})
	require.NoError(t, err)
	require.Len(t, runs[0].Entries, 3)
	assert.Equal(t, "short", runs[0].Info.Case)
	assert.Equal(t, 0.0, runs[0].Entries[1].Tensor.At(0), "an equal tensor is stored once")
	assert.Equal(t, 1.0, runs[0].Entries[2].Tensor.At(0))
	require.NoError(t, dump.CloseAll(runs))

	for _, tt := range []struct{ data, want, reason string }{
		{`{"schema": 4, "cases": [{"schema": 1}]}`, "schema is 4, this version reads 1 to 3", "a later version"},
		{`{"schema": 2, "cases": [{"schema": 1}], "path": "chunked:4"}`,
			`unknown field "path": next to "cases" want "schema" alone`, "it would say nothing here"},
		{`{"schema": 2, "cases": [{"schema": 2, "pth": "one-pass"}]}`, `did you mean "path"?`, "a case is read like a dump"},
		{`{"schema": 1, "cases": []}`, "it has no cases", "an empty list"},
	} {
		_, err := dump.OpenCases(folder(t, map[string]any{"run.json": tt.data}), dump.Options{})
		require.ErrorContains(t, err, tt.want, tt.reason)
	}
	_, err = dump.OpenCases(with(`"short.0.safetensors":"00"`), dump.Options{})
	require.ErrorContains(t, err, "damaged", "a hash that does not fit")
}
