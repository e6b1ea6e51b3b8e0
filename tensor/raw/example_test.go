package raw_test

import (
	"fmt"
	"log"

	"github.com/goparity/goparity/tensor/raw"
)

// Open opens a file; here the content is in memory.
func Example() {
	content := []byte{0x80, 0x3f, 0x00, 0x40, 0x40, 0x40, 0x80, 0x40, 0xa0, 0x40, 0xc0, 0x40}
	spec, err := raw.Parse("bf16:?x3")
	if err != nil {
		log.Fatal(err)
	}
	f, err := raw.Decode("norm-output", content, spec)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	t := f.Tensors[0]
	fmt.Println(t, t.At(0), t.At(5))
	// Output: bfloat16[2 3] 1 6
}
