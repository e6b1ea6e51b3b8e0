package mapfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// JSONError adds the line to an error of encoding/json about data, if the error knows its position.
func JSONError(data []byte, err error) error {
	var off int64 = -1
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		off = syntax.Offset
	case errors.As(err, &typ):
		off = typ.Offset
	}
	if off < 0 || off > int64(len(data)) {
		return err
	}
	return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:off], []byte("\n")), err)
}
