package localise

import "github.com/goparity/goparity/internal/label"

// Role says on which side of a layer a port lies.
type Role bool

// The roles of a port.
const (
	Input  Role = true
	Output Role = false
)

// RoleOf tells inputs from outputs by the port's name.
func RoleOf(port string) Role { return Role(label.IsInput(port)) }
