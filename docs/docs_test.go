package docs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/docs"
)

// Every row has all columns of its table, whatever stands in them.
func TestCauses(t *testing.T) {
	ids := docs.Causes()
	require.Contains(t, ids, "norm/eps")
	require.Contains(t, ids, "edit/exchange")
	for _, id := range ids {
		parts := docs.Cause(id)
		require.GreaterOrEqual(t, len(parts), 2, id)
		assert.Equal(t, "id", parts[0].Name, id)
		for _, p := range parts {
			assert.NotEmpty(t, p.Name, id)
			assert.NotContains(t, p.Text, " | ", id)
		}
	}
	assert.Nil(t, docs.Cause("norm/ep"))
	assert.Nil(t, docs.Cause(""))
}
