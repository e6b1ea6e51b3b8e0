package maxckpt_test

import (
	"fmt"
	"log"

	"github.com/goparity/goparity/tensor/maxckpt"
)

func Example() {
	f, err := maxckpt.Open("testdata/f32-2x3x4x5.max")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	t := f.Tensors[0]
	fmt.Println(t.Name, t, t.At(119), "at byte", t.Place().Offset)
	// Output:
	// f32-2x3x4x5 float32[2 3 4 5] 119.5 at byte 65
}
