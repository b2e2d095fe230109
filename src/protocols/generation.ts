/** Compares the generations that names of models have. */

/** Returns a number that orders generations: 4.10 comes after 4.9. */
export const generation = (major: number, minor = 0): number => 100 * major + minor
