/** The file that runs all tests beside it in one process. */
export const SHARED_PROCESS = 'shared-process.ts'
