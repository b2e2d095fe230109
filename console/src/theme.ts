/** The theme that the user chose, else the system's. */
export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const STORED = 'tollgate-theme'

export function theme(): Theme {
  const stored = localStorage.getItem(STORED)
  return THEMES.find((one) => one === stored) ?? 'system'
}

export function applyTheme(chosen: Theme): void {
  localStorage.setItem(STORED, chosen)
  showTheme()
}

export function showTheme(): void {
  const chosen = theme()
  if (chosen === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = chosen
}
