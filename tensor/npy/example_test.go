package npy_test

import (
	"fmt"
	"log"

	"github.com/goparity/goparity/tensor/npy"
)

func Example() {
	f, err := npy.Open("testdata/stored.npz")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for _, t := range f.Tensors[:3] {
		fmt.Println(t.Name, t, t.At(0))
	}
	// Output:
	// a float32[32] 0
	// model.layers.0/out float32[2 3 4] 0
	// scalar int64[] 7
}
