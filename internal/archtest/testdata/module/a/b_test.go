package a_test

import _ "io"
