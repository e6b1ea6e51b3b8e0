package tensor_test

import (
	"fmt"
	"log"

	"github.com/goparity/goparity/tensor"
)

func Example() {
	x, err := tensor.Of([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		log.Fatal(err)
	}
	y, err := x.Transpose()
	if err != nil {
		log.Fatal(err)
	}
	values := make([]float64, y.Len())
	y.Float64s(values, 0)
	fmt.Println(y, y.Strides(), values)
	// Output: float32[3 2] [1 3] [1 4 2 5 3 6]
}
