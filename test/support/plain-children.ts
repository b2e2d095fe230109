/**
 * The test runner watches the modules of every process below it by a hook that it passes on in the environment. What a
 * test starts is not affected, and is a third quicker without. What is our own loads what was made ready before.
 */
const STRIPPED_ONCE = new URL('./stripped-once.mjs', import.meta.url).href

/** Before a program of ours. */
export const NODE_ARGS = ['--import', STRIPPED_ONCE] as const
/** The same for all that a program starts. */
export const NODE_OPTIONS = NODE_ARGS.join(' ')

process.env.NODE_OPTIONS = NODE_OPTIONS
