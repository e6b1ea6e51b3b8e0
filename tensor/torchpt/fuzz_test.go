package torchpt_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/torchpt"
)

// FuzzDecode requires that any bytes give a typed error, or tensors of which every element can be
// read.
func FuzzDecode(f *testing.F) {
	for _, name := range allFiles(f) {
		f.Add(readTestdata(f, name))
	}
	f.Fuzz(decodeAnything)
}

// FuzzUnpickle mutates only the pickle, in a good archive.
func FuzzUnpickle(f *testing.F) {
	for _, name := range allFiles(f) {
		data := readTestdata(f, name)
		// The pickle is the first record. An approximate search from its protocol to its STOP is
		// good enough for a seed.
		if from := bytes.Index(data, []byte{0x80}); from >= 0 {
			data = data[from:]
		}
		if to := bytes.Index(data, []byte("PK\x07\x08")); to >= 0 {
			data = data[:to]
		}
		f.Add(data)
	}
	f.Add([]byte("\x80\x02" + good() + "."))
	f.Fuzz(func(t *testing.T, pickle []byte) {
		decodeAnything(t, []byte(archiveOf(t, member{name: "a/data.pkl", data: string(pickle)},
			member{name: "a/data/0", data: "0123456789abcdef"})))
	})
}

func decodeAnything(t *testing.T, data []byte) {
	f, err := torchpt.Decode("fuzz.pt", data)
	if err != nil {
		var fe *tensor.FormatError
		require.ErrorAs(t, err, &fe)
		require.NotEmpty(t, fe.Msg)
		require.Error(t, fe.Err)
		return
	}
	require.NotEmpty(t, f.Tensors)
	readAll(t, f)
}
