//go:build !linux && !darwin

package whole

import "errors"

func exchange(string, string) error { return errors.ErrUnsupported }
