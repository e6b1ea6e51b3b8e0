package golden_test

import (
	"fmt"
	"log"

	"github.com/goparity/goparity/golden"
)

// The goldens of a forward pass are read tensor by tensor.
func Example() {
	store, err := golden.Open("../examples/layercomparison/fixtures/blocks/golden")
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	entries, err := store.Tensors("float32", "ids", "0")
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range entries[:3] {
		fmt.Println(e.Label(), e.Tensor)
	}
	fmt.Println(golden.Diff(store, store))
	// Output:
	// model.embed_tokens-input_0 int64[1 9]
	// model.embed_tokens-output float32[1 9 32]
	// model.layers.0.norm-input_0 float32[1 9 32]
	// []
}
