package b

import _ "os"
