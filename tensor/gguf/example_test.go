package gguf_test

import (
	"fmt"
	"log"

	"github.com/goparity/goparity/tensor/gguf"
)

func Example() {
	f, err := gguf.Open("testdata/types.gguf")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	t, _ := f.Lookup("blk.Q4_K.weight")
	fmt.Println(f.Metadata["general.architecture"], t, t.Packing(), t.At(0))
	// Output:
	// llama float32[2 256] q4_k 0.14418792724609375
}
