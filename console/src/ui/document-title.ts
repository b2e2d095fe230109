/** The title of the browser's tab. */
import { useEffect } from 'react'

export function useDocumentTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Tollgate`
  }, [title])
}
