module soperator-pulumi/pause

go 1.26.0
