package printlog_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/goparity/goparity/internal/printlog"
)

func Example() {
	text := `Building the model
model.norm-output = tensor([[0.5000, 1.5000, 2.5000, ..., 5.5000, 6.5000, 7.5000]], dtype=f32, shape=[8])
`
	records, _, err := printlog.Parse("max.log", strings.NewReader(text))
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range records {
		fmt.Println(r.Label, r.Style, r.DType, r.Shape, r.Index, r.Values, r.Complete)
	}
	// Output:
	// model.norm-output COMPACT float32 [8] [0 1 2 5 6 7] [0.5 1.5 2.5 5.5 6.5 7.5] false
}
