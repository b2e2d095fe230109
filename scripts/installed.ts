/** Packages that an install may lack: those for development. */

/** Returns the address that `resolve` finds; null where npm has not installed its package. */
export function resolveInstalled(resolve: () => string): string | null {
  try {
    return resolve()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return null
    throw error
  }
}
