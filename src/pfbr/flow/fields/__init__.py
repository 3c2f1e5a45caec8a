"""Vector fields that a cloud and a likelihood define, each of which turns when the cloud is turned."""
