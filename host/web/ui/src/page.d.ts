// What the build puts into the page.

/** The version of the sources that the page was built from: that of the host that it came with. */
declare const PAGE_VERSION: string
