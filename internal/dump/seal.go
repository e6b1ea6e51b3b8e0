package dump

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// errSeal says that a file does not say what it said when it was written: a merge has lost something of it.
var errSeal = errors.New("the file does not fit its sha256")

// Seal returns the hash of a JSON object without its key "sha256". The order of keys, white space, escapes
// and the form of numbers do not matter: numbers are float64.
func Seal(data []byte) (string, error) {
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		return "", err
	}
	delete(object, "sha256")
	canonical, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// CheckSeal compares a JSON object with the hash that it should have.
func CheckSeal(data []byte, want string) error {
	got, err := Seal(data)
	switch {
	case err != nil:
		return err
	case want == "":
		return fmt.Errorf("%w: it has none", errSeal)
	case got != want:
		return fmt.Errorf("%w: it says %.12s…, what it lists has %.12s…", errSeal, want, got)
	}
	return nil
}
