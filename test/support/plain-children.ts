/**
 * The test runner watches the modules of every process below it by a hook that it passes on in the environment. What a
 * test starts is not its business, and is a third quicker without.
 */
const { NODE_OPTIONS = '' } = process.env
if (NODE_OPTIONS.includes('@tapjs/')) delete process.env.NODE_OPTIONS
