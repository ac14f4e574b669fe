/// What the command says of itself.
enum Help {
  static let short = """
    usage: wormhole <verb>

      demo        show what stands, in a directory that is removed afterwards
      --help      this, with examples
      --version   the version

    """

  static let long =
    short + """

      Exit status: 0 done, 64 the command line makes no sense, 70 the demonstration failed,
      74 the output could not be written.

      Examples:
        wormhole demo
        wormhole --version

      """
}
