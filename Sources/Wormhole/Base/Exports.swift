// The public types of the lower modules: the error, the values, and the few types in signatures.
// The rest of the lower modules is for the package alone.
@_exported public import WormholeContainerStorage
@_exported public import WormholePropertyLists
