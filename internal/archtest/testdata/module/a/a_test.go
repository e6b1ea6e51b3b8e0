package a

import _ "testing"
