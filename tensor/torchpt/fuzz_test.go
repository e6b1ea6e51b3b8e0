package torchpt_test

import (
	"bytes"
	"testing"

	"github.com/goparity/goparity/tensor/internal/tensortest"
	"github.com/goparity/goparity/tensor/torchpt"
)

func FuzzDecode(f *testing.F) { tensortest.Fuzz(f, torchpt.Decode, "testdata/*.pt", nil) }

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
		tensortest.Survives(t, torchpt.Decode, []byte(archiveOf(t, member{name: "a/data.pkl", data: string(pickle)},
			member{name: "a/data/0", data: "0123456789abcdef"})))
	})
}
