/** The dialog that lists what the keys of the console do. */
import { t } from '../i18n.ts'
import { Dialog } from './dialog.tsx'

type Keys = readonly string[]

const listShortcuts = (
  command: string,
): readonly (readonly [string, readonly (readonly [Keys, string])[]])[] => [
  [
    t('Everywhere'),
    [
      [[command, 'K'], t('Find a page, a name or any id')],
      [['?'], t('Show this list')],
      [['Esc'], t('Close what is open')],
    ],
  ],
  [
    t('Calls'),
    [
      [['/'], t('Add a filter')],
      [['j'], t('Open the next call')],
      [['k'], t('Open the previous call')],
    ],
  ],
  [
    t('Charts'),
    [
      [['←', '→'], t('Go from value to value')],
      [['Home', 'End'], t('Go to the first and the last value')],
    ],
  ],
  [t('Playground'), [[[command, 'Enter'], t('Send')]]],
]

interface ShortcutListProps {
  /** The name of the key that begins commands. */
  readonly command: string
  onClose(): void
}

export const ShortcutList = ({ command, onClose }: ShortcutListProps) => (
  <Dialog title={t('Keyboard shortcuts')} onClose={onClose}>
    {listShortcuts(command).map(([place, shortcuts]) => (
      <section key={place} className="mt-4 first:mt-0">
        <h3 className="text-quiet text-xs">{place}</h3>
        <dl>
          {shortcuts.map(([keys, what]) => (
            <div key={what} className="mt-2 grid grid-cols-[7rem_minmax(0,1fr)] items-baseline">
              <dt className="flex gap-1">
                {keys.map((key) => (
                  <kbd key={key} className="rounded border border-line bg-raised px-1.5 font-sans text-xs">
                    {key}
                  </kbd>
                ))}
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
      </section>
    ))}
  </Dialog>
)
