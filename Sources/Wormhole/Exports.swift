// What users of this module see of the rooms below: the error, the values, and the few types that
// stand in signatures. Everything else there is for the package alone.
@_exported public import PropertyLists
@_exported public import SharedContainer
