// The slider over stages.
