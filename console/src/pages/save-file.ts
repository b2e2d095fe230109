/** Saves a file that the page made. */
export function saveFile(name: string, type: string, parts: readonly BlobPart[]): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([...parts], { type }))
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}
