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

func ExampleWriteUnique() {
	x, err := tensor.Of([]float32{1, 2, 3}, 3)
	if err != nil {
		log.Fatal(err)
	}
	layers := []tensor.Named{{Name: "embed.output", Tensor: x}, {Name: "norm.input", Tensor: x}}
	var b bytes.Buffer
	ranges, err := safetensors.WriteUnique(&b, layers, nil)
	if err != nil {
		log.Fatal(err)
	}
	f, err := safetensors.Decode("layers.safetensors", b.Bytes())
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for i, r := range ranges {
		fmt.Printf("%s is stored as %s, %d bytes at %d\n", layers[i].Name, r.Name, r.Length, r.Offset)
	}
	fmt.Println(len(f.Tensors), "tensor in the file")
	// Output:
	// embed.output is stored as embed.output, 12 bytes at 128
	// norm.input is stored as embed.output, 12 bytes at 128
	// 1 tensor in the file
}
