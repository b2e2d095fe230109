/**
 * Starts Node.js without what tap adds to the environment of every program below a test, which watches each module that
 * it loads. `env` comes after that.
 */
export const plainNode = (options = ''): readonly string[] => [
  'env',
  `NODE_OPTIONS=${options}`,
  process.execPath,
]
