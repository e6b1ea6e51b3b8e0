package m

import (
	"fmt"
	_ "github.com/goparity/goparity/a"
)

var _ = fmt.Sprint
