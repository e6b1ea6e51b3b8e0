package setting

import (
	"fmt"
	"strings"
)

// MayUpdate refuses updates of goldens in CI, which no one would see.
func MayUpdate(getenv func(string) string) error {
	if ci := strings.ToLower(getenv("CI")); ci != "" && ci != "false" && ci != "0" &&
		getenv("PARITY_UPDATE_IN_CI") != "1" {
		return fmt.Errorf("goldens are not updated in CI (CI=%s): set PARITY_UPDATE_IN_CI=1 if this job is meant to",
			getenv("CI"))
	}
	return nil
}
