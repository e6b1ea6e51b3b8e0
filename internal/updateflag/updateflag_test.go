package updateflag_test

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/updateflag"
)

func TestSetFollowsTheFlag(t *testing.T) {
	f := flag.Lookup("update")
	require.NotNil(t, f, "importing the package registers the flag")
	was := f.Value.String()
	t.Cleanup(func() { require.NoError(t, flag.Set("update", was)) })

	require.NoError(t, flag.Set("update", "true"))
	assert.True(t, updateflag.Set())
	require.NoError(t, flag.Set("update", "false"))
	assert.False(t, updateflag.Set())
}
