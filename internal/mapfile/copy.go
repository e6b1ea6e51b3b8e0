package mapfile

import (
	"errors"
	"io"
	"os"
)

// Copy writes the content of a regular file to another one, which it replaces.
func Copy(to, from string) error {
	in, err := Regular(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
