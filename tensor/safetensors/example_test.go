package safetensors_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

func Example() {
	x, err := tensor.Of([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		log.Fatal(err)
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, []tensor.Named{{Name: "encoder.output", Tensor: x}},
		map[string]string{"engine": "torch"}); err != nil {
		log.Fatal(err)
	}
	f, err := safetensors.Decode("golden.safetensors", b.Bytes())
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for _, t := range f.Tensors {
		fmt.Println(t.Name, t, t.At(5), "at byte", t.Place().Offset)
	}
	fmt.Println(f.Metadata)
	// Output:
	// encoder.output float32[2 3] 6 at byte 128
	// map[engine:torch]
}
