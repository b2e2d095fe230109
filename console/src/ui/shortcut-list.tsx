/** The dialog that lists what the keys of the console do. */
import { Fragment } from 'react'
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
    <dl className="grid grid-cols-[auto_minmax(0,1fr)] items-baseline gap-x-6 gap-y-2">
      {listShortcuts(command).map(([place, shortcuts]) => (
        <Fragment key={place}>
          <div className="col-span-2 mt-2 text-quiet text-xs first:mt-0">{place}</div>
          {shortcuts.map(([keys, what]) => (
            <Fragment key={what}>
              <dt className="flex gap-1">
                {keys.map((key) => (
                  <kbd key={key} className="rounded border border-line bg-raised px-1.5 font-sans text-xs">
                    {key}
                  </kbd>
                ))}
              </dt>
              <dd>{what}</dd>
            </Fragment>
          ))}
        </Fragment>
      ))}
    </dl>
  </Dialog>
)
