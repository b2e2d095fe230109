/** The file that runs all tests beside it in one process. */
export const ROOM = 'shared-process.ts'
