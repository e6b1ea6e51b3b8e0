package mapfile_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/mapfile"
)

// What is forgotten is read again; memory that is no file's stays as it is.
func TestForget(t *testing.T) {
	name, data := write(t, 40*mapfile.SmallFile)
	m, err := mapfile.Open(name)
	require.NoError(t, err)
	for _, part := range [][]byte{m.Data, m.Data[5:], m.Data[5000:20000], m.Data[:1], nil, m.Data[len(m.Data)-9000:]} {
		mapfile.Forget(part)
		assert.True(t, bytes.Equal(data, m.Data))
	}
	own := bytes.Repeat([]byte{7}, 1<<20)
	mapfile.Forget(own)
	assert.True(t, bytes.Equal(bytes.Repeat([]byte{7}, 1<<20), own))
	require.NoError(t, m.Close())
	mapfile.Forget(own)
	assert.Equal(t, byte(7), own[0])
}
