// Package seal protects what a JSON file says by a hash in it: a file from which a merge has lost
// something is found.
package seal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// Key is the key of the hash in the file's object.
const Key = "sha256"

// ErrBroken says that a file does not say what it said when it was written.
var ErrBroken = errors.New("the file does not fit its sha256")

// Sum returns the hash of a JSON object without its Key. The order of keys, white space, escapes
// and the form of numbers do not matter: numbers are float64.
func Sum(data []byte) (string, error) {
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		return "", err
	}
	delete(object, Key)
	canonical, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// Check compares a JSON object with the hash that it should have. The error is [ErrBroken].
func Check(data []byte, want string) error {
	got, err := Sum(data)
	if err != nil {
		return err
	}
	switch {
	case want == "":
		return fmt.Errorf("%w: it has none", ErrBroken)
	case got != want:
		return fmt.Errorf("%w: it says %.12s…, what it lists has %.12s…", ErrBroken, want, got)
	}
	return nil
}
