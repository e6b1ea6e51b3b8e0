package compare_test

import (
	"fmt"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

func Example() {
	golden, _ := tensor.Of([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	actual, _ := tensor.Of([]float32{1, 2, 3, 4, 5.5, 6}, 2, 3)

	tol := compare.Tolerance{Atol: 1e-5, Rtol: 1e-3}
	r, err := compare.Tensors(golden, actual, tol)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d of %d differ, the first is %v\n", r.Mismatches, r.N, golden.Index(r.FirstMismatch))
	fmt.Printf("largest |a−g| %g: %g instead of %g\n", r.MaxAbs.Value, r.MaxAbs.Actual, r.MaxAbs.Golden)

	d, err := compare.Explain(golden, actual, tol)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("in %s, %s; an rtol of %.4f would pass\n", d.BadRows.Text("row"), d.BadColumns.Text("column"),
		d.SmallestRtol)
	// Output:
	// 1 of 6 differ, the first is [1 1]
	// largest |a−g| 0.5: 5.5 instead of 5
	// in row 1, column 1; an rtol of 0.1000 would pass
}

func ExampleCriteria_Judge() {
	golden, _ := tensor.Of([]float32{1, 2, 3, 4}, 2, 2)
	actual, _ := tensor.Of([]float32{1, 2, 3, 4.01}, 2, 2)

	verdict, err := compare.Default(golden.DType(), actual.DType()).Judge(golden, actual, compare.References{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(verdict.Pass)
	for _, v := range verdict.Violations {
		fmt.Println(v.Text)
	}
	// Output:
	// false
	// relative L2 is 0.001826, at most 0.0001 is asked
	// relative L2 of the worst row (row 1) is 0.002, at most 0.0001 is asked
}
