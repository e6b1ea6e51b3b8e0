package torchpt_test

import (
	"fmt"
	"log"

	"github.com/goparity/goparity/tensor/torchpt"
)

func Example() {
	f, err := torchpt.Open("testdata/state_dict.pt")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for _, t := range f.Tensors {
		fmt.Println(t.Name, t)
	}
	// Output:
	// fc.weight float32[2 3]
	// fc.bias float32[2]
	// norm.weight float32[2]
	// norm.bias float32[2]
	// norm.running_mean float32[2]
	// norm.running_var float32[2]
	// norm.num_batches_tracked int64[]
}
