package enum PropertyListsRoom {}
