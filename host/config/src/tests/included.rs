//! Configurations of several files: what they come to, what is refused, and where it is said to stand.

use std::path::{Path, PathBuf};

use super::super::include::Included;
use super::super::*;

/// A folder of files that is gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn with(name: &str, files: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("conductor-include-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let folder = Self(folder);
        files.iter().for_each(|(file, text)| folder.write(file, text));
        folder
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn config(&self) -> PathBuf {
        self.0.join("config.toml")
    }

    fn read(&self) -> Result<Loaded, Diagnostics> {
        let text = std::fs::read_to_string(self.config()).unwrap();
        read(&text, &self.config().display().to_string())
    }

    /// What is said of it, without the name of the folder.
    fn refusal(&self) -> String {
        let said = match self.read() {
            Ok(loaded) => loaded.warnings.to_string(),
            Err(wrong) => wrong.to_string(),
        };
        said.replace(&format!("{}/", self.0.display()), "").replace(&self.0.display().to_string(), "FOLDER")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A mapping of the controller of this number.
fn mapping(cc: u8) -> String {
    format!("[[global_mappings]]\ntrigger = {{ type = \"CC\", cc = {cc} }}\naction = {{ type = \"Suppress\" }}\n")
}

#[test]
fn lists_go_on_in_the_files_that_are_named_in_their_order() {
    let folder = Folder::with(
        "order",
        &[
            (
                "config.toml",
                "include = [\"bindings.toml\", \"shows/*.toml\"]\n[[modes]]\nname = \"Play\"\n[chat]\nsteps = 3\n",
            ),
            ("bindings.toml", "[[devices]]\nalias = \"pads\"\nname = \"Pads\"\n[chat]\nseconds = 60\n"),
            ("shows/b.toml", "[[modes]]\nname = \"B\"\n"),
            (
                "shows/a.toml",
                "include = [\"more/c.toml\"]\n[[modes]]\nname = \"A\"\n[[modes.mappings]]\ntrigger = { type = \"CC\", cc = 1, device = \"pads\" }\naction = { type = \"ModeChange\", mode = \"C\" }\n",
            ),
            ("shows/more/c.toml", "[[modes]]\nname = \"C\"\n"),
            ("shows/.hidden.toml", "not TOML"),
            ("shows/notes.txt", "not TOML"),
        ],
    );
    let Loaded { config, source, warnings } = folder.read().map_err(|wrong| wrong.to_string()).unwrap();
    assert!(warnings.is_empty(), "{warnings}");
    let modes: Vec<&str> = config.modes.iter().map(|mode| mode.name.as_str()).collect();
    assert_eq!(modes, ["Play", "A", "C", "B"]);
    assert_eq!((config.bindings[0].alias.as_str(), config.chat.steps), ("pads", 3));
    assert_eq!(source.files().len(), 5);
    let at = source.place(&["modes".into(), 1.into(), "mappings".into(), 0.into(), "trigger".into(), "cc".into()]);
    let location = source.location(at.start);
    assert!(location.file.ends_with("a.toml") && (location.line, location.column) == (5, 31), "{location}");
    assert!(source.folder_of(&["modes".into(), 2.into()]).ends_with("shows/more"));
    assert!(source.file_of(&["bindings".into(), 0.into()]).0.ends_with("bindings.toml"));
}

#[test]
fn mistakes_are_told_with_the_file_in_which_they_stand() {
    let folder = Folder::with(
        "mistakes",
        &[
            (
                "config.toml",
                "include = [\"a.toml\", \"b.toml\"]\n[[modes]]\nname = \"Play\"\nclour = \"red\"\n[chat]\nsteps = 3\n",
            ),
            ("a.toml", "# é\n[[modes]]\nname = \"Play\"\n[chat]\nsteps = 4\n"),
            ("b.toml", "[api]\nhttp_port = 99999\n[mcp\n[llm]\nenabled = 3\n"),
        ],
    );
    let expected = "\
error: config.toml:4:1: unknown key `clour`
 4 | clour = \"red\"
   | ^^^^^
     allowed: `name`, `color`, `over`, `mappings`

error: a.toml:5:1: `steps` is set in two files
 5 | steps = 4
   | ^^^^^
     help: it is set at config.toml:6:1 already; keep one of the two

error: b.toml:2:13: `http_port` is out of range: 99999
 2 | http_port = 99999
   |             ^^^^^
     allowed: 0 to 65535

error: b.toml:3:5: unclosed table, expected `]`
 3 | [mcp
   |     ^

4 errors in config.toml and 2 files that it includes
";
    assert_eq!(folder.refusal(), expected);
    // With that mended, names are looked at, too.
    folder.write("b.toml", "");
    let refusal = folder.refusal();
    assert!(
        refusal.contains("error: a.toml:3:8: a second mode is called \"Play\"")
            && refusal.contains("help: the first is at config.toml:3:8"),
        "{refusal}"
    );
    let json = serde_json::to_value(folder.read().unwrap_err()).unwrap();
    let of_a = &json["diagnostics"][1];
    assert!(of_a["file"].as_str().is_some_and(|file| file.ends_with("a.toml")), "{of_a}");
    assert_eq!((&of_a["line"], &of_a["place"]["start"]), (&3.into(), &22.into()));
}

#[test]
fn what_cannot_be_included_is_refused_at_its_entry() {
    let folder = Folder::with(
        "refused",
        &[
            (
                "config.toml",
                "include = [\n\"none.toml\",\n\"../x.toml\",\n\"config.toml\",\n\"a.toml\",\n\"a.toml\",\n\"none-*.toml\",\n\"*/a.toml\",\n\".\",\n\"folder\",\n\"*.toml\"]\n",
            ),
            ("a.toml", "include = [\"b.toml\"]"),
            ("b.toml", "include = [\"a.toml\"]"),
            ("folder/x.toml", ""),
        ],
    );
    let refusal = folder.refusal();
    let headings: Vec<&str> =
        refusal.lines().filter(|line| line.starts_with("error") || line.starts_with("warning")).collect();
    let expected = [
        "error: config.toml:2:1: there is no file none.toml",
        "error: config.toml:3:1: \"../x.toml\" leads out of the folder of config.toml",
        "error: config.toml:4:1: config.toml is a part of this configuration already",
        "error: config.toml:6:1: a.toml is a part of this configuration already",
        "warning: config.toml:7:1: no file is called \"none-*.toml\"",
        "error: config.toml:8:1: \"*/a.toml\" has a `*` in a folder's name",
        "error: config.toml:9:1: FOLDER: is a folder, not a plain file",
        "error: config.toml:10:1: folder: is a folder, not a plain file",
        "error: b.toml:1:12: a.toml is a part of this configuration already",
    ];
    assert_eq!(headings, expected, "{refusal}");
}

#[cfg(unix)]
#[test]
fn only_an_absolute_path_leads_out_of_the_folder() {
    let outside = Folder::with("outside", &[("y.toml", &mapping(1))]);
    let folder = Folder::with("inside", &[("config.toml", "include = [\"link.toml\"]\n"), ("real.toml", &mapping(2))]);
    std::os::unix::fs::symlink(outside.0.join("y.toml"), folder.0.join("link.toml")).unwrap();
    assert!(
        folder.refusal().starts_with("error: config.toml:1:12: \"link.toml\" leads out of the folder of config.toml"),
        "{}",
        folder.refusal()
    );
    std::fs::remove_file(folder.0.join("link.toml")).unwrap();
    std::os::unix::fs::symlink("real.toml", folder.0.join("link.toml")).unwrap();
    assert_eq!(folder.read().unwrap().config.global_mappings.len(), 1);
    folder.write("config.toml", &format!("include = [{:?}]\n", outside.0.join("y.toml").display().to_string()));
    assert_eq!(folder.read().unwrap().config.global_mappings.len(), 1);
}

#[test]
fn files_are_bounded_in_number_depth_and_size() {
    let many: Vec<String> = (0..65).map(|number| format!("m/{number:02}.toml")).collect();
    let mut files: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "")).collect();
    let names: Vec<String> = many.iter().map(|name| format!("{name:?}")).collect();
    let config = format!("include = [{}]\n", names.join(", "));
    files.push(("config.toml", &config));
    let folder = Folder::with("bounds", &files);
    let refusal = folder.refusal();
    assert!(
        refusal.contains("`include` has 65 items") && refusal.contains("m/64.toml is one file too many"),
        "{refusal}"
    );
    folder.write("config.toml", "include = [\"m/*.toml\"]");
    assert!(folder.refusal().contains("\"m/*.toml\" names more than 64 files"), "{}", folder.refusal());

    for depth in 0..9 {
        folder.write(&format!("d/{depth}.toml"), &format!("include = [\"{}.toml\"]", depth + 1));
    }
    folder.write("d/9.toml", "");
    folder.write("config.toml", "include = [\"d/0.toml\"]");
    assert!(
        folder.refusal().contains("error: d/7.toml:1:12: \"8.toml\" is one of too many files"),
        "{}",
        folder.refusal()
    );

    let half = format!("# {}\n", "x".repeat(2 * 1024 * 1024));
    folder.write("config.toml", "include = [\"one.toml\", \"two.toml\"]");
    folder.write("one.toml", &half);
    folder.write("two.toml", &half);
    assert!(folder.refusal().contains("two.toml does not fit: all files together"), "{}", folder.refusal());
}

#[test]
fn another_text_of_the_file_names_no_file_that_was_not_read() {
    let folder = Folder::with(
        "again",
        &[("config.toml", "include = [\"a.toml\"]\n"), ("a.toml", &mapping(1)), ("b.toml", &mapping(2))],
    );
    let loaded = folder.read().unwrap();
    std::fs::remove_file(folder.0.join("a.toml")).unwrap();
    let other = loaded.source.parse(&format!("include = [\"a.toml\"]\n{}", mapping(3))).unwrap();
    assert_eq!(other.config.global_mappings.len(), 2, "the file is not read again");
    let refused = loaded.source.parse("include = [\"a.toml\", \"b.toml\"]\n").unwrap_err().to_string();
    assert!(refused.contains("\"b.toml\" is not among the files that were read"), "{refused}");
    assert!(parse("include = [\"b.toml\"]\n", &folder.config().display().to_string()).is_err());

    let a = loaded.source.files().nth(1).unwrap().0.to_owned();
    let changed = loaded.source.with_text(&a, &[mapping(1), mapping(4)].concat()).unwrap();
    assert_eq!(changed.config.global_mappings.len(), 2);
    assert_ne!(changed.source.included(), loaded.source.included());
}

#[test]
fn what_is_included_is_watched_even_where_it_is_not_there() {
    let folder = Folder::with("watched", &[("config.toml", "include = [\"shows/*.toml\", \"none.toml\"]\n")]);
    let included =
        Included::read("include = [\"shows/*.toml\", \"none.toml\"]\n", &folder.config().display().to_string());
    let watched = included.watched();
    let watches = |folder: &Path, name: &str| watched.iter().any(|one| one.folder == folder && one.is(name));
    assert!(watches(&folder.0, "none.toml") && watches(&folder.0.join("shows"), "a.toml"));
    assert!(!watches(&folder.0, "a.toml") && !watches(&folder.0.join("shows"), ".a.toml"));
    assert!(Included::read("# include\n", "config.toml").watched().is_empty());
}

#[test]
fn what_is_left_of_a_configuration_with_mistakes_has_what_it_includes() {
    let folder = Folder::with(
        "salvage",
        &[("config.toml", &format!("include = [\"a.toml\"]\n{}", mapping(200))), ("a.toml", &mapping(1))],
    );
    let rest = salvage(&folder.read().unwrap_err()).unwrap();
    assert_eq!(rest.config.global_mappings.len(), 2);
}
