/** Keys that stand for something on a page. */
import { useEffect, useRef } from 'react'

/** Runs what a key stands for, by its name, unless someone types into a field. */
export function useShortcuts(shortcuts: Readonly<Record<string, () => void>>): void {
  const latest = useRef(shortcuts)
  latest.current = shortcuts
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { key, target, ctrlKey, metaKey, altKey } = event
      if (ctrlKey || metaKey || altKey) return
      if (target instanceof Element && target.closest('input, textarea, select') !== null) return
      const run = Object.hasOwn(latest.current, key) ? latest.current[key] : undefined
      if (run === undefined) return
      event.preventDefault()
      run()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
}
