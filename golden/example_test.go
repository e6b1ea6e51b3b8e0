package golden_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/goparity/goparity/golden"
)

// Goldens are imported from a dump of the reference, and read tensor by tensor.
func Example() {
	folder, err := os.MkdirTemp("", "golden")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	dir := filepath.Join(folder, "golden")

	dump, err := golden.OpenDump("testdata/layer_comparison")
	if err != nil {
		log.Fatal(err)
	}
	defer dump.Close()
	delta, err := golden.Import(context.Background(), dir, golden.ImportOptions{Runs: dump.Runs})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(delta.Added), "goldens are new,", len(delta.Moved), "moved")

	store, err := golden.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	entries, err := store.Tensors("float32", "ids", "0")
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range entries[:3] {
		t, err := e.Tensor()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Label(), t, e.NaN)
	}
	// Output:
	// 36 goldens are new, 0 moved
	// model.embed_tokens-input_0 int64[1 9] 0
	// model.embed_tokens-output float32[1 9 32] 0
	// model.layers.0.norm-input_0 float32[1 9 32] 0
}
