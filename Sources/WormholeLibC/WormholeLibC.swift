// The C library, by one name: its Swift modules have different ones.
#if canImport(Musl)
  @_exported public import Musl
#else
  @_exported public import Glibc
#endif
